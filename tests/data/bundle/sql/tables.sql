CREATE TABLE orders (id BIGINT, amount INT, day DATE) USING delta PARTITIONED BY (day);
CREATE TABLE corrections (id BIGINT, amount INT, day DATE) USING delta;
CREATE TABLE sums (day DATE, total BIGINT) USING delta PARTITIONED BY (day);
