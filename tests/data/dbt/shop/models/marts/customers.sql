{{ config(
    materialized='incremental',
    incremental_strategy='merge',
    unique_key='id',
    merge_exclude_columns=['first_seen'],
    post_hook=["update {{ target.schema }}.load_state set loaded = current_timestamp() where model = 'customers'"]
) }}
select id, name, country, updated_at, updated_at as first_seen
from {{ ref('stg_customers') }}
