      insert overwrite table dev.event_days
      partition (day)
    select `id`, `customer`, `amount`, `day` from event_days__dbt_tmp
