package anthropic_test

import (
	"testing"

	"modelrelay/api/anthropic"
	"modelrelay/api/body/bodytest"
)

func FuzzNames(f *testing.F) { bodytest.FuzzNames(f, anthropic.Checkers()) }
