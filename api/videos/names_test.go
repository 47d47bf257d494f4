package videos_test

import (
	"testing"

	"modelrelay/api/body/bodytest"
	"modelrelay/api/videos"
)

func FuzzNames(f *testing.F) { bodytest.FuzzNames(f, videos.Checkers()) }
