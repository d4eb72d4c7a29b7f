// SPDX-License-Identifier: MIT

// Package scripttest is the script language of our tests. A script in testdata is a
// dialogue with a database: each directive is a request or a move of the clock, and below
// its ---- is the answer. The package tests behaviour through the protocol alone. It never
// reads rows, except in the check at the end of every script: all rows of the data must
// agree with each other.
//
// Every script runs three times, with the same output: in process, with the handler called
// directly; in process, with four physical partitions in every container; and over HTTPS
// against a server on disk. Those of TTL run over direct mode and HTTP/2 too, and on two nodes
// of a cluster, through the one that owns nothing; all of them if MAYFLY_TRANSPORTS or
// MAYFLY_LONG is set. Where PostgreSQL is installed scripts run on it too: some, and all of
// them if MAYFLY_REQUIRE_POSTGRES is set. Then the nodes of a cluster are three processes of
// the program, two of which may own partitions. What a server cannot run it leaves out:
// leftOut has the reasons, and -v shows them. `go test -rewrite` writes the present output
// into the scripts: review the difference like code.
//
// A script begins with a comment that says what it shows. Before its first directive there
// are a new server with a database "db", and a test clock that stands at
// 2100-01-01T00:00:00Z, which is 4102444800 in _ts. Directives are about container "c" of
// that database, unless in= and db= name another.
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
//	feed                       the changes since the change feed was last read
//
//	query                run a query as SDKs do, over all partitions, and in other ways
//	                     with the same result: in pages of one row, in one partition,
//	                     and without a plan; query plan shows the plan
//	where                the ids of the items for which each of several filters holds
//	value                the value of each of several expressions
//
//	udf, replace-udf, show-udf, drop-udf, udfs    user-defined functions; the same
//	                     for sproc and trigger
//	run                  a stored procedure
//
//	throughput [name]    the provisioned throughput of a container, or a database
//	set-throughput       change it
//	offers, query-offers list or query the offers
//
//	user, permission     make users and their permissions; show-, replace- and drop-
//	users, permissions   list them
//	as t                 make requests with the token of a permission; as owner, as nobody
//	account              the account's regions and its consistency
//	send GET dbs/db      send a request that has no verb of its own
//
//	purge                purge all expired items; purge does not run in the
//	                     background, unless the server was started with it
//	usage, lag           what is live, what has expired and is not purged, and since when
//	ttl                  a container's TTL, and the settings of purge in it
//	pause, resume, limit change those; drain waits for purge in the background
//	whatif 60            the effect of another default TTL
//	forecast 1h 24       how much will expire when
//	explain a            when an item expires, and why
//	undelete a ttl=10    bring an expired item back; undeletable lists those that can come back
//	events               the items that expired since events were last read
//
//	now, freeze, advance 5s, set 2100-01-01T00:01:00Z, release, confirm
//	wall                 move the machine's clocks, which the database follows
//	server               as the first directive: set up the server in another way
//	restart              stop the server and start it on the same data
//	crash                lose what was not durable, or kill -9 the nodes that own
//	                     partitions, and start on the rest
//	check                check all rows
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
