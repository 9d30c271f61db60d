        create or replace table dev.recent_orders
    using delta
      partitioned by (day)
      as
select id, customer, amount, day
from dev.stg_events
where kind = 'order' and day = date '2026-01-02'
