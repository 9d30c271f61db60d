        create or replace table dev.customers
    using delta
      as
select id, name, country, updated_at, updated_at as first_seen
from dev.stg_customers
