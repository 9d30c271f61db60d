{{ config(
    materialized='incremental',
    incremental_strategy='append',
    partition_by='day',
    post_hook=["delete from {{ this }} where day < date '2025-01-01'", "update {{ target.schema }}.load_state set loaded = current_timestamp() where model = 'events_log'"]
) }}
select id, kind, day
from {{ ref('stg_events') }}
{% if is_incremental() %}
where loaded_at > timestamp '2026-01-01 00:00:00'
{% else %}
where day >= date '2025-01-01'
{% endif %}
