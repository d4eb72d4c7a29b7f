// SPDX-License-Identifier: MIT

package catalog

import (
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/value"
)

// fullTextLanguages are the supported languages of texts.
var fullTextLanguages = []string{"en-US", "fr-FR", "de-DE", "it-IT", "pt-BR", "pt-PT", "es-ES"}

// englishByNumber means en-US in the service's samples.
const englishByNumber = "1033"

// checkFullText checks the paths and languages of the full-text policy.
func (d *Definition) checkFullText() error {
	policy, err := d.object("fullTextPolicy")
	if policy == nil {
		return err
	}
	if err := checkLanguage(policy, "defaultLanguage"); err != nil {
		return err
	}
	for o, err := range objects(policy, "fullTextPolicy", "fullTextPaths") {
		if err != nil {
			return err
		}
		path, _ := textMember(o, "path")
		if _, err := value.ParsePath(path); err != nil {
			return invalid("The Full Text Policy contains an invalid Path: %s", value.Clip(path))
		}
		if err := checkLanguage(o, "language"); err != nil {
			return err
		}
	}
	return nil
}

// checkLanguage checks the language that a member names, if it is there.
func checkLanguage(o *value.Object, name string) error {
	if s, ok := textMember(o, name); ok && s != englishByNumber && !slices.Contains(fullTextLanguages, s) {
		return invalid(`The Full Text Policy contains an unsupported language %s. Supported languages are: "%s".`, value.Clip(s), strings.Join(fullTextLanguages, `", "`))
	}
	return nil
}
