        create or replace table dev.top_customers
    using delta
      as
select c.id, c.name, o.amount
from dev.customers as c join dev.recent_orders as o on o.customer = c.id
