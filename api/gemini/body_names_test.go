package gemini_test

import (
	"testing"

	"modelrelay/api/body/bodytest"
	"modelrelay/api/gemini"
)

func FuzzNames(f *testing.F) { bodytest.FuzzNames(f, gemini.Checkers()) }
