package openai_test

import (
	"testing"

	"modelrelay/api/body/bodytest"
	"modelrelay/api/openai"
)

func FuzzNames(f *testing.F) { bodytest.FuzzNames(f, openai.Checkers()) }
