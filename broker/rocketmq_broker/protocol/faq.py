"""The advice in remarks, as RocketMQ's have it (FAQUrl). Clients add their own advice to remarks without an address."""

FURTHER_DETAILS = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."
