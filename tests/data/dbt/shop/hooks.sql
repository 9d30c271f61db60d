CREATE TABLE load_state (model STRING, loaded TIMESTAMP) USING delta;
CREATE TABLE run_log (project STRING, at TIMESTAMP) USING delta
