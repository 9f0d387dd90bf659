"""What tests and benchmarks both need: a Kafka broker, jars by Maven, the controller in simulated time."""
