      insert overwrite table dev.daily_totals
      partition (day)
    select `customer`, `orders`, `amount`, `day` from daily_totals__dbt_tmp
