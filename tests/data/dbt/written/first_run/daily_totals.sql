        create or replace table dev.daily_totals
    using delta
      partitioned by (day)
      as
with __dbt__cte__paid as (
select id, customer, amount, day, loaded_at from dev.stg_events where kind = 'paid'
) select customer, count(*) as orders, sum(amount) as amount, day
from __dbt__cte__paid
group by customer, day
