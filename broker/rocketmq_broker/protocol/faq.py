"""Where remarks send the reader, as RocketMQ's do (FAQUrl). Clients add advice of their own to remarks that hold no address."""

FURTHER_DETAILS = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."
