MERGE INTO orders AS o
USING (SELECT * FROM corrections WHERE day = :day) AS c
ON o.id = c.id AND o.day = :day
WHEN MATCHED THEN UPDATE SET amount = c.amount
WHEN NOT MATCHED THEN INSERT *;
