package activities

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
	"modelrelay/storage/archive"
)

const (
	// variantTimeout bounds the copy of one picture. Nothing depends on it.
	variantTimeout = 20 * time.Second
	// variantLimit bounds one picture, in bytes; a sprite sheet of a minute of video has a few million.
	variantLimit = 32 << 20
)

// copyVariants archives the pictures of an output, if the vendor has any. It skips one that fails: the client did not pay for it.
func (a *Copier) copyVariants(ctx context.Context, log *slog.Logger, in ArchiveInput, n int) []Variant {
	pick, adapter, err := a.target(in.Job.Assignment)
	if err != nil {
		return nil
	}
	has, ok := adapter.(providers.Variants)
	if !ok {
		return nil
	}
	var variants []Variant
	for _, name := range providers.VariantNames() {
		variant, err := a.copyVariant(ctx, has, pick.Target, in, n, name)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			log.Info("variant not archived", "output", n, "variant", name, "kind", providers.AsFault(err).Kind, "fault", err)
			continue
		}
		variants = append(variants, variant)
	}
	return variants
}

func (a *Copier) copyVariant(
	ctx context.Context, from providers.Variants, to providers.Target, in ArchiveInput, n int, name string,
) (made Variant, err error) {
	ctx, span := a.turn(ctx, to, upstream.Step{Does: "open " + name + " of"})
	defer func() { span.End(providers.AsFault(err)) }()
	ctx, cancel := context.WithTimeout(ctx, variantTimeout)
	defer cancel()
	picture, err := from.OpenVariant(ctx, to, in.Job.Ticket, n, name)
	if err != nil {
		return Variant{}, err
	}
	defer picture.Body.Close()
	if !strings.HasPrefix(picture.ContentType, "image/") {
		// An upstream without variants returns the video itself.
		return Variant{}, providers.Faultf(providers.NotFound, "The upstream sends no picture for the variant.")
	}
	key := fmt.Sprintf("%s%d.%s", OutputPrefix(in.Job.TaskID, in.Expires), n, name)
	stalled := time.AfterFunc(variantTimeout, cancel)
	defer stalled.Stop()
	body := &source{body: picture.Body, limit: variantLimit, stalled: stalled, pace: new(pace)}
	object, err := a.Objects.Put(ctx, key, body, picture.Length, archive.PutOptions{ContentType: picture.ContentType})
	if err != nil {
		return Variant{}, fmt.Errorf("copy variant %s: %w", name, copyFault(ctx, err))
	}
	return Variant{Name: name, Object: object.Key, ContentType: picture.ContentType, Size: object.Size, SHA256: object.SHA256}, nil
}
