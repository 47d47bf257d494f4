package media_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelrelay/providers/media"
)

// TestLength reads sine tones of 1.5 s that ffmpeg wrote. The frames of MP3 and AAC begin before and end behind the tone.
func TestLength(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*")
	if err != nil || len(files) < 10 {
		t.Fatalf("got %v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := media.Length(bytes.NewReader(content), int64(len(content)))
		slack := 10 * time.Millisecond
		if ext := filepath.Ext(file); ext == ".mp3" || ext == ".aac" {
			slack = 150 * time.Millisecond
		}
		if off := (got - 1500*time.Millisecond).Abs(); !ok || strings.Contains(file, "live") && off > 30*time.Millisecond ||
			!strings.Contains(file, "live") && off > slack {
			t.Errorf("%s: got %v, %v, want 1.5 s", file, got, ok)
		}
	}
}

// TestLengthUnknown reads what has no length.
func TestLengthUnknown(t *testing.T) {
	t.Parallel()
	for _, content := range []string{
		"", "short", "A text that is long enough for every header.", "RIFF\xff\xff\xff\xffWAVEfmt \xff\xff\xff\xff",
		"\x00\x00\x00\x00ftyp\x00\x00\x00\x00",
		"\x00\x00\x00\x08ftyp\x00\x00\x00\x28moov\x00\x00\x00\x20mvhd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"\x1aE\xdf\xa3\x80\x18S\x80g\x01\xff\xff\xff\xff\xff\xff\xffD\x89\x84\x7f\xc0\x00\x00", "fLaC\x00\x00\x00\x22",
		"\xff\xfb\x90\x00\x00\x00\x00",
		strings.Repeat("\x00\x00\x00\x08moov", 10),
	} {
		if got, ok := media.Length(strings.NewReader(content), int64(len(content))); ok && !strings.HasPrefix(content, "\xff") {
			t.Errorf("%q: got %v", content, got)
		}
	}
}

// FuzzLength: no file crashes the reader or has a length below zero.
func FuzzLength(f *testing.F) {
	files, _ := filepath.Glob("testdata/x.*")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if got, ok := media.Length(bytes.NewReader(content), int64(len(content))); ok != (got > 0) {
			t.Errorf("got %v, %v", got, ok)
		}
	})
}
