// SPDX-License-Identifier: MIT

// Texts of answers that are the same on every transport.

package api

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/ru"
	"github.com/mayflydb/mayfly/internal/store"
)

// Charged returns the charge in the answer.
func (c *Call) Charged() ru.Units {
	if c.Answer.Charge == 0 {
		return ru.Metadata
	}
	return c.Answer.Charge
}

// defaultQuotaKiB is the quota in the answers about a container that has none. The SDKs'
// own tests check for this number.
const defaultQuotaKiB = 10 << 20

// QuotaText returns the quota of a container as answers show it.
func QuotaText(bytes int64) string {
	size := int64(defaultQuotaKiB)
	if bytes > 0 {
		size = KiB(bytes)
	}
	return fmt.Sprintf("documentSize=10240;documentsSize=%d;documentsCount=-1;collectionSize=%d;", size, size)
}

// AppendUsage appends what a container or a partition holds, as answers show it.
func AppendUsage(dst []byte, live store.Amount) []byte {
	size := KiB(live.Bytes)
	dst = strconv.AppendInt(append(dst, "documentSize=0;documentsSize="...), size, 10)
	dst = strconv.AppendInt(append(dst, ";documentsCount="...), live.Items, 10)
	dst = strconv.AppendInt(append(dst, ";collectionSize="...), size, 10)
	return append(dst, ';')
}

// uriComponent changes a text that is escaped for a query to what encodeURIComponent
// gives.
var uriComponent = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")

// EscapeLog escapes the log of a script as clients decode it.
func EscapeLog(text string) string { return uriComponent.Replace(url.QueryEscape(text)) }
