    insert into table dev.events_log
    select `id`, `kind`, `day` from events_log__dbt_tmp
