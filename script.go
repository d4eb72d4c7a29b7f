// SPDX-License-Identifier: MIT

package mayfly

import "github.com/mayflydb/mayfly/internal/script"

// RunScriptWorker lets this program run stored procedures, triggers and user-defined
// functions. They run in processes of their own, which are this program started again:
// in such a process the call does not return. In any other it returns at once.
//
// A program that serves scripts calls it before anything else, at the start of main, and
// a test at the start of TestMain:
//
//	func TestMain(m *testing.M) {
//		mayfly.RunScriptWorker()
//		os.Exit(m.Run())
//	}
//
// Without it scripts are refused, with a message that names this function; everything
// else works.
func RunScriptWorker() { script.RunWorker() }
