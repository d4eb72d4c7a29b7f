module github.com/mayflydb/mayfly

go 1.26.0

require github.com/alecthomas/kong v1.16.1
