// SPDX-License-Identifier: MIT

package cli

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestOwnEndpoint: a check of a container asks the server of that container.
func TestOwnEndpoint(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "http://127.0.0.1:8081"},
		{map[string]string{"MAYFLY_LISTEN": "0.0.0.0:9000"}, "http://127.0.0.1:9000"},
		{map[string]string{"MAYFLY_LISTEN": ":9000"}, "http://127.0.0.1:9000"},
		{map[string]string{"MAYFLY_LISTEN": "9000"}, "http://127.0.0.1:9000"},
		{map[string]string{"MAYFLY_LISTEN": "10.0.0.1:9000"}, "http://10.0.0.1:9000"},
		{map[string]string{"PORT": "9000"}, "http://127.0.0.1:8081"},
		{map[string]string{"PORT": "9000", "MAYFLY_EMULATOR": "true"}, "http://127.0.0.1:9000"},
	} {
		t.Run("", func(t *testing.T) {
			for _, name := range []string{"MAYFLY_LISTEN", "PORT", "MAYFLY_EMULATOR"} {
				t.Setenv(name, c.env[name])
			}
			if got := ownEndpoint(); got != c.want {
				t.Errorf("%v: %s, want %s", c.env, got, c.want)
			}
		})
	}
}

// What a release links into the program is the version that it says, and the files that build
// releases name that variable as it is called.
func TestVersionOfReleases(t *testing.T) {
	version = "v1.2.3"
	t.Cleanup(func() { version = "" })
	if got := versionLine(); !strings.HasPrefix(got, "mayfly v1.2.3, go") {
		t.Errorf("it says %q", got)
	}
	name := reflect.TypeFor[commands]().PkgPath() + ".version="
	for file, value := range map[string]string{".goreleaser.yaml": "v{{ .Version }}", "deploy/Dockerfile": "$VERSION"} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "-X "+name+value) {
			t.Errorf("%s does not set %s%s", file, name, value)
		}
	}
}

// notSettings are names in the files of deploy that others use.
var notSettings = []string{"MAYFLY_CONNECTION", "MAYFLY_CERTIFICATE"}

// The settings, flags and commands in files for deployment are those of the program: nothing
// else would tell that one is spelled wrongly before a container starts.
func TestDeployNamesSettings(t *testing.T) {
	var c commands
	k, err := kong.New(&c, options("mayfly")...)
	if err != nil {
		t.Fatal(err)
	}
	known := variables(k.Model.Node)
	for _, file := range []string{"Dockerfile", "mayfly.service", "compose.yaml", "action/action.yml", "action/start"} {
		text, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`MAYFLY_[A-Z_]+`).FindAllString(string(text), -1) {
			if !slices.Contains(known, name) && !slices.Contains(notSettings, name) {
				t.Errorf("%s: there is no setting %s", file, name)
			}
		}
		for _, command := range regexp.MustCompile(`(?m)(?:"/mayfly", |/bin/mayfly |"\$binary" )"?([a-z]+)"?(.*)$`).FindAllStringSubmatch(string(text), -1) {
			i := slices.IndexFunc(k.Model.Children, func(n *kong.Node) bool { return n.Name == command[1] })
			if i < 0 {
				t.Errorf("%s: there is no command %s", file, command[1])
				continue
			}
			for _, flag := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(command[2], -1) {
				if !slices.ContainsFunc(k.Model.Children[i].Flags, func(f *kong.Flag) bool { return f.Name == flag[1] }) {
					t.Errorf("%s: mayfly %s has no flag --%s", file, command[1], flag[1])
				}
			}
		}
	}
	if text, err := os.ReadFile("../../deploy/Dockerfile"); err != nil || !strings.Contains(string(text), "USER 65532") {
		t.Errorf("the image runs as root: %v", err)
	}
}
