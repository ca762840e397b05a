"""What brokers are asked: the requests, and the answers as one reads them."""
