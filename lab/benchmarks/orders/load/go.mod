module transactional-messages/benchmarks/orders/load

go 1.19
