// SPDX-License-Identifier: MIT

package mayfly

import (
	"embed"

	"github.com/mayflydb/mayfly/internal/docs"
)

//go:embed README.md ARCHITECTURE.md CHANGELOG.md RELEASING.md docs/*.md docs/images/*.png
//go:embed deploy/README.md test/compat/*.md clients/*/README.md
var pages embed.FS

// site has the pages for people, which the explorer links to.
var site = docs.New(pages)
