"""Both Kafka clients: how they are configured, connected and diagnosed, and what brokers are asked. Knows no job."""
