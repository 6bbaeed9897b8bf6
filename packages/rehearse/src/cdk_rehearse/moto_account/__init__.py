"""The only room that knows moto, which gives the simulated account its services.

README.md lists what moto lacks and what it does otherwise than AWS. Other rooms decide what AWS
does; a module for each service connects that with moto.
"""
