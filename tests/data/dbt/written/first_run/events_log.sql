        create or replace table dev.events_log
    using delta
      partitioned by (day)
      as
select id, kind, day
from dev.stg_events
where day >= date '2025-01-01'
