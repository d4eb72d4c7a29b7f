module github.com/mayflydb/mayfly/test/kill

go 1.26
