package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// TestLicenses compares the embedded file with the licences of what the product links now. It fails as well if a part has no
// known licence, or one that is not allowed.
func TestLicenses(t *testing.T) {
	t.Parallel()
	parts, err := read(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := write(&got, parts, false); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(root, "cmd", "gateway", "internal", "buildinfo", "licenses.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the linked parts have changed: go run -C dev ./licenses > cmd/gateway/internal/buildinfo/licenses.txt\n%s", got.String())
	}
	for _, line := range []string{
		"modelrelay\tApache-2.0\n", "std\tBSD-3-Clause\n", "rapidoc@",
		"github.com/hashicorp/golang-lru/v2\tMPL-2.0\n",
	} {
		if !strings.Contains(got.String(), line) {
			t.Errorf("%q is not in the list", line)
		}
	}
	got.Reset()
	if err := write(&got, parts, true); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"==== std: LICENSE\n", "Mozilla Public License, version 2.0", "Copyright (c) 2022 Mrinmoy Majumdar",
		"==== github.com/prometheus/client_golang: NOTICE\n",
	} {
		if !strings.Contains(got.String(), text) {
			t.Errorf("%q is not in the texts", text)
		}
	}
}

func TestRefusedLicenses(t *testing.T) {
	t.Parallel()
	const (
		zero = "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted.\n\n" +
			"THE SOFTWARE IS PROVIDED \"AS IS\" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED " +
			"WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR " +
			"CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, " +
			"NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.\n"
		gpl = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License " +
			"as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.\n\n" +
			"This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied warranty of " +
			"MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU General Public License for more details.\n\n" +
			"You should have received a copy of the GNU General Public License along with this program. If not, see <http://www.gnu.org/licenses/>.\n"
	)
	for name, tc := range map[string]struct {
		texts         []string
		license, want string // want: of the error; "" for none
	}{
		"allowed": {[]string{zero}, "0BSD", ""},
		"no file": {nil, "", "some/module has no licence"},
		"unknown": {[]string{"All rights reserved. Ask the author."}, "", "the licence in a is not known"},
		"known in part": {
			[]string{zero + strings.Repeat("The author keeps this right and that one. ", 60)},
			"0BSD",
			"the licence in a is not known",
		},
		"copyleft":           {[]string{gpl}, "GPL-3.0-or-later", "a has the licence GPL-3.0-or-later"},
		"allowed and others": {[]string{zero, gpl}, "0BSD AND GPL-3.0-or-later", "b has the licence GPL-3.0-or-later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var paths []string
			dir := t.TempDir()
			for i, text := range tc.texts {
				path := filepath.Join(dir, string(rune('a'+i)))
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				paths = append(paths, path)
			}
			got, err := newPart("some/module", paths)
			switch {
			case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			case got.license() != tc.license:
				t.Errorf("got %s, want %s", got.license(), tc.license)
			}
		})
	}
}
