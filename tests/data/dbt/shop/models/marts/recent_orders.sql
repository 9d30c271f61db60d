{{ config(
    materialized='incremental',
    incremental_strategy='merge',
    unique_key=['id', 'day'],
    partition_by=['day'],
    merge_update_columns=['amount'],
    incremental_predicates=["DBT_INTERNAL_DEST.day = date '2026-01-02'"]
) }}
select id, customer, amount, day
from {{ ref('stg_events') }}
where kind = 'order' and day = date '2026-01-02'
