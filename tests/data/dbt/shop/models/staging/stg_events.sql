{{ config(event_time='day') }}
select id, customer, kind, amount, day, loaded_at
from {{ source('raw', 'events') }}
where amount is not null
