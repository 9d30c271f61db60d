"""What engines that are databases share: connections, gated SQL, schedules."""
