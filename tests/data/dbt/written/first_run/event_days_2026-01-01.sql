        create or replace table dev.event_days
    using delta
      partitioned by (day)
      as
select id, customer, amount, day from (select * from dev.stg_events where day >= '2026-01-01 00:00:00+00:00' and day < '2026-01-02 00:00:00+00:00')
