{{ config(materialized='ephemeral') }}
select id, customer, amount, day, loaded_at from {{ ref('stg_events') }} where kind = 'paid'
