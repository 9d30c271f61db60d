{{ config(materialized='table') }}
select c.id, c.name, o.amount
from {{ ref('customers') }} as c join {{ ref('recent_orders') }} as o on o.customer = c.id
