module transactional-messages/benchmarks/load

go 1.19
