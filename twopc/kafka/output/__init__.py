"""Records written: encoded, handed to librdkafka, and written without transactions."""
