module github.com/mayflydb/mayfly/deploy/notices

go 1.26
