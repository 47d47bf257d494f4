package calllog

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"modelrelay/storage"
)

const (
	// pastMost bounds the compressed bytes of the history that one page reads, in addition to scanMost.
	pastMost = 64 << 20
	// longestCall is the maximal duration of a call: a search for calls before a time skips files that were begun so long after it.
	longestCall = 24 * time.Hour
	// unpackedMost bounds the decompressed bytes of one file: twice fileLines.
	unpackedMost = 2 * fileLines
	// newestSeam is the seam if Redis has no calls.
	newestSeam = 1<<53 - 1
)

// historyFile is the decoded name of a file of the history.
type historyFile struct {
	name string
	// from is the arrival of its earliest call, to the time at which it was closed.
	from, to time.Time
}

var errNoHistory = errors.New("not a file of the call history")

// parseHistory parses a file's name.
func parseHistory(name string) (historyFile, error) {
	base, ours := strings.CutSuffix(path.Base(name), historyEnding)
	parts := strings.Split(base, "-")
	if !ours || len(parts) != 3 {
		return historyFile{}, errNoHistory
	}
	from, err := strconv.ParseUint(parts[1], 10, 62)
	if err != nil {
		return historyFile{}, errNoHistory
	}
	to, err := strconv.ParseUint(parts[2], 10, 62)
	if err != nil {
		return historyFile{}, errNoHistory
	}
	return historyFile{name: name, from: time.UnixMilli(int64(from)), to: time.UnixMilli(int64(to))}, nil
}

// read decompresses a file. A file of another program or that no longer exists is empty.
func (f historyFile) read(ctx context.Context, files HistoryFiles) (lines string, size int64, err error) {
	content, size, err := files.Open(ctx, f.name)
	if errors.Is(err, storage.ErrNotFound) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	defer content.Close()
	unpacked, err := zstd.NewReader(content, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderLowmem(true))
	if err != nil {
		return "", size, nil // a file of another program
	}
	defer unpacked.Close()
	var text strings.Builder
	_, err = io.Copy(&text, io.LimitReader(unpacked, unpackedMost))
	if errors.Is(err, storage.ErrUnavailable) || ctx.Err() != nil {
		return "", size, err
	}
	return text.String(), size, nil // of a broken file, the lines before the fault
}

// pastPlace is the place of a scan in the history.
type pastPlace struct {
	// seam is the place of the oldest call that was read from Redis: the scan skips it and newer calls.
	seam place
	// hour is the folder, such as 2026-11-22/16; "": the newest. file is the name of a file in it without its ending; "": the newest.
	// offset is the offset of the line at which the scan continues backwards.
	hour, file string
	offset     int
}

// pastMark begins a place in the history; a place in Redis begins with a digit.
const pastMark = "h"

func (p pastPlace) String() string {
	text := pastMark + p.seam.String()
	if p.hour != "" {
		text += "/" + p.hour
	}
	if p.file != "" {
		text += "/" + p.file + "/" + strconv.Itoa(p.offset)
	}
	return text
}

// parsePast parses a place in the history.
func parsePast(text string) (pastPlace, error) {
	parts := strings.Split(strings.TrimPrefix(text, pastMark), "/")
	if n := len(parts); n != 1 && n != 3 && n != 5 {
		return pastPlace{}, ErrPlace
	}
	var p pastPlace
	var ok bool
	if p.seam, ok = parsePlace(parts[0]); !ok {
		return p, ErrPlace
	}
	if len(parts) > 1 {
		p.hour = parts[1] + "/" + parts[2]
		if _, err := time.Parse(hourLayout, p.hour); err != nil {
			return p, ErrPlace
		}
	}
	if len(parts) > 3 {
		p.file = parts[3]
		offset, err := strconv.ParseUint(parts[4], 10, 31)
		if _, bad := parseHistory(p.file + historyEnding); bad != nil || err != nil {
			return p, ErrPlace
		}
		p.offset = int(offset)
	}
	return p, nil
}

type pastScan struct {
	scan

	at   pastPlace
	read int64 // compressed bytes
	ends time.Time
}

// scanPast searches the history, the newest file first. It returns the calls of one process in order, and those of several processes file
// by file, each of at most five minutes.
func (r *Reader) scanPast(ctx context.Context, s scan) (Page, error) {
	at, err := parsePast(s.within.After)
	if err != nil {
		return s.page, err
	}
	p := &pastScan{scan: s, at: at, ends: time.Now().Add(scanMost)}
	days, err := r.folders(ctx, p, "", time.DateOnly, 25*time.Hour)
	if err != nil {
		return p.page, err
	}
	for _, day := range days {
		hours, err := r.folders(ctx, p, day+"/", hourLayout, 2*time.Hour)
		if err != nil {
			return p.page, err
		}
		for _, hour := range hours {
			if p.exhausted() {
				p.page.Next = pastPlace{seam: at.seam, hour: hour}.String()
				return p.page, nil
			}
			enough, err := r.scanHour(ctx, p, hour)
			if err != nil || enough {
				return p.page, err
			}
		}
	}
	p.page.Next = ""
	return p.page, nil
}

// exhausted reports whether the page has reached its bound of time or bytes.
func (p *pastScan) exhausted() bool { return p.read >= pastMost || time.Now().After(p.ends) }

// textOf returns a text member of a line, still escaped; "" without it.
func textOf(line, name string) string {
	_, rest, found := strings.Cut(line, `,"`+name+`":"`)
	if !found {
		return ""
	}
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

// folders returns the folders below a folder that may contain calls of the filter, the newest first. Files end within late of their time.
func (r *Reader) folders(ctx context.Context, p *pastScan, below, layout string, late time.Duration) (names []string, err error) {
	since, until := p.matcher.filter.Since, p.matcher.filter.Until
	for folder, err := range r.files.Folders(ctx, HistoryFolder+below) {
		if err != nil {
			return nil, err
		}
		name := below + path.Base(folder)
		at, err := time.Parse(layout, name)
		switch {
		case err != nil, p.at.hour != "" && name > p.at.hour[:len(name)]:
		case !since.IsZero() && at.Add(late).Before(since), !until.IsZero() && at.After(until.Add(longestCall)):
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, nil
}

// scanHour scans the files of an hour; true: the page is complete.
func (r *Reader) scanHour(ctx context.Context, p *pastScan, hour string) (enough bool, err error) {
	var files []historyFile
	for name, err := range r.files.List(ctx, HistoryFolder+hour+"/") {
		if err != nil {
			return false, err
		}
		if file, err := parseHistory(name); err == nil {
			files = append(files, file)
		}
	}
	slices.SortFunc(files, compareFiles)
	since, until := p.matcher.filter.Since, p.matcher.filter.Until
	for _, file := range files {
		below := unpackedMost + 1
		if hour == p.at.hour && p.at.file != "" {
			at, _ := parseHistory(p.at.file + historyEnding) // the name was checked
			at.name = HistoryFolder + hour + "/" + p.at.file + historyEnding
			switch order := compareFiles(file, at); {
			case order < 0:
				continue
			case order == 0:
				below = p.at.offset
			}
		}
		if !since.IsZero() && file.to.Before(since) || !until.IsZero() && !file.from.Before(until) {
			continue
		}
		if p.exhausted() {
			p.page.Next = p.place(hour, file, unpackedMost)
			return true, nil
		}
		lines, size, err := file.read(ctx, r.files)
		if err != nil {
			return false, err
		}
		p.read += size
		if p.scanLines(lines[:min(len(lines), below)], p.writtenBelow, func(offset int) string { return p.place(hour, file, offset) }) {
			return true, nil
		}
	}
	return false, nil
}

// compareFiles orders files by the time at which they were closed, the latest first.
func compareFiles(a, b historyFile) int {
	return cmp.Or(b.to.Compare(a.to), cmp.Compare(b.name, a.name))
}

// writtenBelow returns the time at which a line was written; false: the line is at or above the seam.
func (p *pastScan) writtenBelow(line string) (at time.Time, below bool) {
	if in, ok := parsePlace(textOf(line, "written")); ok {
		return in.written(), in.compare(p.at.seam) < 0
	}
	return time.UnixMilli(arrivedAt(line) + numberOf(line, "ms")).UTC(), true
}

func (p *pastScan) place(hour string, file historyFile, offset int) string {
	base := strings.TrimSuffix(path.Base(file.name), historyEnding)
	return pastPlace{seam: p.at.seam, hour: hour, file: base, offset: offset}.String()
}
