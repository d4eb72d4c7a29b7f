// SPDX-License-Identifier: MIT

// Package scripttest is the script language of our tests. A script in testdata
// is a dialogue with a database: each directive is a request or a turn of the
// clock, and below its ---- stands what came back. The package tests behaviour
// through the protocol alone, and never looks at rows, but for the check that
// ends every script: all rows of the data must agree with each other.
//
// Every script runs three times and must read the same each time: in process,
// with the handler called directly; in process, with four physical partitions
// to every container; and over HTTPS against a server on disk. `go test -rewrite`
// writes down what happened: read the difference as you read code.
//
// A script begins with a comment that says what it shows. Before its first
// directive there are a new server, a database "db" in it, and a test clock that
// stands at 2100-01-01T00:00:00Z, which is 4102444800 in _ts. What it speaks of
// is container "c" of that database, unless in= and db= name another.
//
//	container [name]     create a container, partitioned by /id
//	show [name]          read it
//	replace-container    replace its definition
//	drop [name]          delete it
//	containers           list those of the database
//	database name        create a database
//	show-database name, drop-database name, databases
//
//	create, upsert, replace    write items, read, delete: and so on
//	patch, batch               change parts of an item, do several operations at once
//	list                       list the items, all pages of them
//	delete-key                 delete all items with a partition key
//	feed                       what has changed since the change feed was last read
//
//	query                run a query as SDKs do, over all partitions, and in other ways
//	                     that must come to the same: in pages of one row, in one
//	                     partition, and without a plan; query plan shows the plan
//	where                the ids of the items for which each of several filters holds
//	value                the value of each of several expressions
//
//	udf, replace-udf, show-udf, drop-udf, udfs    user-defined functions; the same
//	                     for sproc and trigger
//	run                  a stored procedure
//
//	throughput [name]    what is provisioned for a container, or a database
//	set-throughput       change it
//	offers, query-offers list or query the offers
//
//	user, permission     make users and their permissions; show-, replace- and drop-
//	users, permissions   list them
//	as t                 make requests with the token of a permission; as owner, as nobody
//	account              the account's regions and its consistency
//	send GET dbs/db      send a request that has no verb of its own
//
//	purge                take away what has expired: nothing else does, unless the
//	                     server was told to
//	usage, lag           what is live and what waits to be purged, and since when
//	ttl                  a container's settings, and what purge may do in it
//	pause, resume, limit say that; drain waits for purge in the background
//	whatif 60            what another default would do
//	forecast 1h 24       what will expire when
//	explain a            when an item expires, and why
//	events               what has expired since they were last asked for
//
//	now, freeze, advance 5s, set 2100-01-01T00:01:00Z, release, confirm
//	wall                 move the machine's own clocks, under the database
//	server               first of all: set the server up in another way
//	restart              stop the server and start it on the same data
//	crash                lose what was not durable, and start on the rest
//	check                look at every row
//
// Items are given as JSON, on the directive's line or one to a line below it,
// and each is a request of its own; a bare word is the id of one, so that
// `create a {"id":"b","ttl":5}` and `read a b` are two requests each. Each answer
// is a line: the status, the sub-status if there is one, and the body, or the
// text of the error. The properties that the server adds are left out unless
// with=(_ts, _etag) or full asks for them; rids and etags are shown as rid1, rid2
// and etag1, etag2, in the order in which they first appear. A run of characters
// is written <x*1000>.
//
// The handlers in the verbs files say what else each directive takes.
package scripttest
