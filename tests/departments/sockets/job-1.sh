# jobgen slurm --site ./site.toml --nodes 2 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=28
#SBATCH --gpus-per-node=h100:8
#SBATCH --mem=1952G
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=main
# jobgen: note: queue main of sockets: the job gets 3 nodes with 8 x h100, 224 cores, 2000000M, features h100,ib400; --gpus-per-node TYPE:N or --constraint chooses others: 2 nodes with 4 x l4, 64 cores, 500000M, features l4
# jobgen: note: the launcher is srun, that of site site
