package s3

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rclone/gofakes3"
)

// ListBuckets lists the buckets in the order of their names.
func (d *disk) ListBuckets(context.Context) ([]gofakes3.BucketInfo, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var list []gofakes3.BucketInfo
	for name, b := range d.index {
		list = append(list, gofakes3.BucketInfo{Name: name, CreationDate: gofakes3.NewContentTime(b.created)})
	}
	slices.SortFunc(list, func(a, b gofakes3.BucketInfo) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// ListBucket lists the objects, and the folders where there is a delimiter, after the page's marker.
func (d *disk) ListBucket(
	_ context.Context, name string, prefix *gofakes3.Prefix, page gofakes3.ListBucketPage,
) (*gofakes3.ObjectList, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	b := d.index[name]
	if b == nil {
		return nil, gofakes3.BucketNotFound(name)
	}
	if prefix == nil {
		prefix = &gofakes3.Prefix{}
	}
	list := gofakes3.NewObjectList()
	count, last := int64(0), page.Marker
	b.objects.Ascend(max(prefix.Prefix, page.Marker), func(key string, r *record) bool {
		rest, ok := strings.CutPrefix(key, prefix.Prefix)
		if !ok {
			return false
		}
		item := key
		if head, _, found := strings.Cut(rest, prefix.Delimiter); found && prefix.Delimiter != "" {
			item = prefix.Prefix + head + prefix.Delimiter
		}
		if key == page.Marker || item == last {
			return true
		}
		if page.MaxKeys > 0 && count == page.MaxKeys {
			list.IsTruncated, list.NextMarker = true, last
			return false
		}
		count, last = count+1, item
		if item != key {
			list.AddPrefix(item)
			return true
		}
		list.Add(&gofakes3.Content{Key: key, Size: r.Size, ETag: r.etag(), LastModified: gofakes3.NewContentTime(r.Modified)})
		return true
	})
	return list, nil
}

// CreateBucket makes a bucket.
func (d *disk) CreateBucket(_ context.Context, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.index[name] != nil {
		return gofakes3.ResourceError(gofakes3.ErrBucketAlreadyExists, name)
	}
	if err := os.Mkdir(filepath.Join(d.buckets, name), 0o700); err != nil {
		return err
	}
	d.index[name] = &bucket{created: time.Now()}
	return nil
}

// BucketExists reports whether there is a bucket of that name.
func (d *disk) BucketExists(_ context.Context, name string) (bool, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.index[name] != nil, nil
}

// DeleteBucket removes an empty bucket.
func (d *disk) DeleteBucket(_ context.Context, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch b := d.index[name]; {
	case b == nil:
		return gofakes3.BucketNotFound(name)
	case b.objects.Len() > 0:
		return gofakes3.ResourceError(gofakes3.ErrBucketNotEmpty, name)
	}
	if err := os.Remove(filepath.Join(d.buckets, name)); err != nil {
		return err
	}
	delete(d.index, name)
	return nil
}
