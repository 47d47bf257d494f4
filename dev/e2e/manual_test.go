package e2e_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"modelrelay/dev/e2e/stack"
)

// runnable is a block of the manual that can run against a gateway on this machine.
var runnable = regexp.MustCompile("(?ms)^```(sh|python|js) run\n(.*?)^```")

// standIns has modules with the names of the vendors' Python SDKs, which cannot be installed where the tests run. They send what the SDKs
// send.
const standIns = "testdata/python"

// TestManualBlocks runs the blocks of the manual that are marked with "run": those of a page and a language one after the other, as
// one program in an empty folder.
func TestManualBlocks(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	node := installedNode(t)
	modules, err := filepath.Abs(filepath.Join(nodeDir, "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	modulesOfPython, err := filepath.Abs(standIns)
	if err != nil {
		t.Fatal(err)
	}
	s := stack.Shared(t, "--video-min", "100ms", "--video-max", "100ms")
	var channels strings.Builder
	for name, of := range map[string][2]string{
		"openai": {
			"/openai/v1",
			"gpt-4o-mini: , text-embedding-3-small: , gpt-image-1: , tts-1: , whisper-1: , omni-moderation-latest: , sora-2: ",
		},
		"anthropic": {"/anthropic", "claude-sonnet-5: "},
		"gemini":    {"/gemini", "gemini-2.5-flash: "},
	} {
		fmt.Fprintf(&channels, "  - {name: %s, vendor: %s, base_url: 'http://%s%s', keys: [sk-upstream-%s], groups: [default], models: {%s}}\n",
			name, name, s.UpstreamAt, of[0], name, of[1])
	}
	g := s.StartGateway(stack.GatewayOptions{
		Channels: channels.String(), Relay: "moderation_model: omni-moderation-latest", AdminKey: stack.AdminKey,
	})
	pages, err := filepath.Glob(repo + "/cmd/gateway/docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	// The picture that the pages send.
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 720, 1280))); err != nil {
		t.Fatal(err)
	}
	// A program of a page fails with any command, and with a status of 400 and above.
	const begin = "set -euo pipefail\ncurl() { command curl --fail \"$@\"; }\ngateway() { " + `"$GATEWAY" "$@"` + "; }\n"
	runners := map[string][]string{"sh": {"bash"}, "python": {"python3"}, "js": {node}}
	ran := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		programs := map[string]string{}
		for _, block := range runnable.FindAllStringSubmatch(string(text), -1) {
			programs[block[1]] += block[2]
		}
		for language, program := range programs {
			ran++
			t.Run(filepath.Base(page)+" "+language, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				file := filepath.Join(dir, "program")
				if err := os.WriteFile(filepath.Join(dir, "cat.png"), picture.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
				switch language {
				case "sh":
					program = begin + program
				case "js":
					file += ".mjs"
					if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(program, "127.0.0.1:8080", g.Address)), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), runners[language][0], file)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "URL="+g.URL(), "TOKEN="+stack.Token, "GATEWAY_URL="+g.URL(), "GATEWAY_TOKEN="+stack.Token,
					"GATEWAY="+stack.Bin.Gateway, "PYTHONPATH="+modulesOfPython, "PYTHONDONTWRITEBYTECODE=1")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
	if ran < 5 {
		t.Errorf("%d programs were found: the expression is wrong", ran)
	}
}
