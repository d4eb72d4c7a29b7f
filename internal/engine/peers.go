// SPDX-License-Identifier: MIT

package engine

import "context"

// Peers carries questions to other nodes.
type Peers interface {
	// Ask sends a request to a node, which passes it to Engine.Asked, and returns the answer.
	// An error says that there is no answer: the node may have done what it was asked for.
	Ask(ctx context.Context, node, address string, request []byte) (answer []byte, err error)
}
