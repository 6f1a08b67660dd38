module contacts

go 1.21
