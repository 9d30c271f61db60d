{{ config(
    materialized='incremental',
    incremental_strategy='microbatch',
    partition_by='day',
    event_time='day',
    batch_size='day',
    begin='2026-01-01',
    lookback=1
) }}
select id, customer, amount, day from {{ ref('stg_events') }}
