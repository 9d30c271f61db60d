        create or replace table dev.orders
    using delta
      partitioned by (day)
      as
select id, customer, amount, day, loaded_at
from dev.stg_events
where kind = 'order'
