"""What any engine has: schedules carried out, executions and their frames, serial explanations."""
