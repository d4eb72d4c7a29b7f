// SPDX-License-Identifier: MIT

package mayfly

import "github.com/mayflydb/mayfly/internal/script"

// RunScriptWorker lets this program run stored procedures, triggers and user-defined
// functions. They run in child processes, for which the program starts itself again. In a
// child process the call does not return; otherwise it returns at once.
//
// A program that serves scripts calls it first in main, and a test first in TestMain:
//
//	func TestMain(m *testing.M) {
//		mayfly.RunScriptWorker()
//		os.Exit(m.Run())
//	}
//
// Without the call, scripts are refused with a message that names this function;
// everything else works.
func RunScriptWorker() { script.RunWorker() }
