INSERT INTO orders VALUES (:id, :amount, :day);
